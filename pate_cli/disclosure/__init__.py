"""The only door from secret to public: plans, rules, the draw and the report."""
