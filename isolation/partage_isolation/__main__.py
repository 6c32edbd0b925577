from partage_isolation.cli import main

if __name__ == "__main__":
    main()
