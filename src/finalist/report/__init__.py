"""What reports are made of: tables, pictures, and one HTML page that needs nothing else."""
