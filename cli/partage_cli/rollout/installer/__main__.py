from partage_cli.rollout.installer.cli import main

if __name__ == "__main__":
    main()
