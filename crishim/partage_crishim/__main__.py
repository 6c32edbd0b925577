from partage_crishim.cli import main

if __name__ == "__main__":
    main()
