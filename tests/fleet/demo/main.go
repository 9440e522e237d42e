// SPDX-License-Identifier: Apache-2.0

// Command demo shows a BundleRollout on 50 simulated clusters: installation in three waves, an upgrade that one cluster refuses and that
// goes on when the cluster is repaired, and the return of the fleet from a version. What it shows it also checks.
//
// It runs from the root of the repository after `make build`; `make demo-fleet` does both. It goes on until it is interrupted, or ends by
// itself with DEMO_ONCE=1.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/satchel-dev/satchel/tests/fleet"
)

// longest bounds the whole demo, when it ends by itself.
const longest = 15 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	once := os.Getenv("DEMO_ONCE") != "" && os.Getenv("DEMO_ONCE") != "0"
	if err := run(ctx, once); err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, once bool) error {
	ctrllog.SetLogger(logr.Discard())
	log.SetOutput(io.Discard)
	if once {
		bounded, cancel := context.WithTimeout(ctx, longest)
		defer cancel()
		ctx = bounded
	}
	bin, err := filepath.Abs("bin")
	if err != nil {
		return err
	}
	for _, name := range []string{"bundle-source-controller", "bundle-deployment-controller", "bundle-rollout-controller", "satchel"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return fmt.Errorf("%s is missing: run `make demo-fleet`, or `make build` in the root of the repository first", filepath.Join(bin, name))
		}
	}
	dir, err := os.MkdirTemp("", "satchel-demo-fleet-")
	if err != nil {
		return fmt.Errorf("creating the folder of the demo: %w", err)
	}
	d := &demo{bin: bin, dir: dir, began: time.Now(), out: os.Stdout}
	problem := d.play(ctx, once)
	if d.world != nil {
		d.say("Cleaning up.")
		problem = errors.Join(problem, d.world.Close())
	}
	if problem != nil && ctx.Err() == nil {
		return fmt.Errorf("%w\nThe logs of the controllers are in %s; remove it when you have read them", problem, dir)
	}
	return errors.Join(problem, os.RemoveAll(dir))
}

// play tells the story.
func (d *demo) play(ctx context.Context, once bool) error {
	for _, part := range []func(context.Context) error{d.start, d.install, d.upgrade, d.goBack} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	if once {
		return nil
	}
	d.chapter("Look further; Ctrl-C ends the demo and leaves nothing behind")
	d.text(fmt.Sprintf("In another terminal:\nexport KUBECONFIG=%s\nexport PATH=%s:%s:$PATH\n\n"+
		"satchel rollout status shop -n fleet -w\nsatchel rollout clusters shop -n fleet\nkubectl edit configmap shop -n fleet     # another version\n"+
		"kubectl annotate bundlesource shop -n fleet --overwrite reconcile.fluxcd.io/requestedAt=now",
		d.world.ControlPlane.KubeconfigPath(), d.world.ControlPlane.BinDir(), d.bin))
	<-ctx.Done()
	return nil
}

// size is how many clusters there are.
const size = 50

// ring is the label of a cluster by its index: 2 canaries, 18 of production in Europe, and 30 others.
func ring(index int) string {
	switch {
	case index < 2:
		return "canary"
	case index < 20:
		return "prod-eu"
	}
	return "prod-us"
}

func (d *demo) start(ctx context.Context) error {
	d.chapter("A hub and %d clusters", size)
	var err error
	d.world, err = fleet.Start(ctx, fleet.Options{Clusters: size, Ring: ring, Dir: d.dir, Bin: d.bin, Progress: os.Stderr})
	if err != nil {
		return err
	}
	d.say("The hub is a Kubernetes control plane with the three controllers of Satchel, as processes with the permissions of config.")
	d.say("The %d clusters are simulated: each has an address, an identity and a namespace of its own. The hub reaches them by the", size)
	d.say("kubeconfigs in the Secrets of the namespace fleet, with a label ring: 2 canary, 18 prod-eu, 30 prod-us.")
	return nil
}
