"""The only door from secret to public: settings, costs, records, ledgers and reports."""
