"""`python -m harmonium`: the command line."""

from harmonium.cli import main

if __name__ == "__main__":
    main()
