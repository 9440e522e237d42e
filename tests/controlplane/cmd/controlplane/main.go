// SPDX-License-Identifier: Apache-2.0

// Command controlplane runs a Kubernetes control plane for trying things out by hand:
//
//	controlplane build            build the binary and print its folder, for PATH
//	controlplane run [-dir DIR]   run until interrupted; a directory keeps the state for the next time
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/satchel-dev/satchel/tests/controlplane"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	if err := execute(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func execute(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: controlplane build | run [-dir DIR] [-nodes N]")
	}
	switch args[0] {
	case "build":
		return build(ctx)
	case "run":
		return run(ctx, args[1:])
	default:
		return fmt.Errorf("unknown command %q: use build or run", args[0])
	}
}

func build(ctx context.Context) error {
	bin, err := controlplane.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	fmt.Println(filepath.Dir(bin))
	return nil
}

func run(ctx context.Context, args []string) error {
	opts := controlplane.Options{Progress: os.Stderr}
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.StringVar(&opts.Dir, "dir", "", "directory that keeps the state; default: a temporary one")
	flags.IntVar(&opts.Nodes, "nodes", 0, "number of fake nodes; default: 3, negative: none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	cp, err := controlplane.Start(ctx, opts)
	if err != nil {
		return err
	}
	fmt.Printf("export KUBECONFIG=%s\nexport PATH=%s:$PATH\n", cp.KubeconfigPath(), cp.BinDir())
	<-ctx.Done()
	return cp.Stop()
}
