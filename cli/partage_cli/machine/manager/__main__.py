from partage_cli.machine.manager.cli import main

if __name__ == "__main__":
    main()
