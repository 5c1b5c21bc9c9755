"""What commands do. Each module is loaded when one of its commands is wanted, with all that it needs."""
