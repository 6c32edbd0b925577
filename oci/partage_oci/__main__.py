from partage_oci.cli import main

if __name__ == "__main__":
    main()
