from partage_advertiser.cli import main

if __name__ == "__main__":
    main()
