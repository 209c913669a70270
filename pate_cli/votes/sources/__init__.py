"""From what the user names to arrays and tables: files, formats, and copies of what needs one."""
