"""The special functions of scipy that bounds are made of, by the names that modules know."""

from scipy.special import betainc as betainc
from scipy.special import expit as expit
from scipy.special import gammaln as gammaln
from scipy.special import log_expit as log_expit
from scipy.special import log_ndtr as log_ndtr
from scipy.special import logsumexp as logsumexp
from scipy.special import ndtr as ndtr
from scipy.special import ndtri as ndtri
from scipy.special import ndtri_exp as ndtri_exp
