"""``python -m geomgcn``."""

from geomgcn.cli import main

if __name__ == "__main__":
    main()
