"""The shell: carries out what the core decides, on what the storage keeps."""
