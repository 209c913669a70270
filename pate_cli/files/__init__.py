"""Files: outputs that appear together when all are complete, documents, and locks."""
