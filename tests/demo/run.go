// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/upstream"
)

// demo is a run of the demo.
type demo struct {
	*narrator
	options
	repo string // root of the repository
	dir  string // everything the demo writes

	cluster     *cluster
	controllers *guarded
	git         *upstream.Git
	registry    *upstream.Registry
	seen        map[string]string            // conditions that were told
	applied     []*unstructured.Unstructured // in order
	cleanups    []func(context.Context) error
}

// errInterrupted says that the user ended the demo before it was over.
var errInterrupted = errors.New("interrupted before the end")

// run plays the demo and leaves nothing behind, save the logs when it fails.
func run(ctx context.Context, o options) error {
	ctrllog.SetLogger(logr.Discard())
	log.SetOutput(io.Discard) // the Git server reports every request there
	d := &demo{narrator: newNarrator(os.Stdout), options: o, seen: map[string]string{}}
	if err := d.findBinaries(); err != nil {
		return err
	}
	janitor, err := d.openDir()
	if err != nil {
		return err
	}
	problem := d.play(ctx)
	if ctx.Err() != nil && problem != nil {
		problem = errInterrupted
	}
	problem = errors.Join(problem, d.cleanUp())
	if problem != nil && !errors.Is(problem, errInterrupted) && d.controllers != nil {
		janitor.abandon()
		return fmt.Errorf("%w\nThe logs of the controllers are in %s; remove it when you have read them", problem, d.dir)
	}
	return errors.Join(problem, janitor.stop())
}

// play tells the story.
func (d *demo) play(ctx context.Context) error {
	parts := []func(context.Context) error{d.startCluster, d.installSatchel, d.publish, d.install, d.repair, d.upgrade}
	if d.servers {
		parts = []func(context.Context) error{d.startCluster, d.installSatchel, d.commitSample}
	}
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return err
		}
	}
	switch {
	case d.servers:
		d.describeServers()
		return d.untilInterrupted(ctx)
	case !d.once:
		d.inviteToLook()
		return d.untilInterrupted(ctx)
	}
	if err := d.showCommands(ctx); err != nil {
		return err
	}
	return d.removeDeployments(ctx)
}

// untilInterrupted waits for Ctrl-C, or for the end of a controller.
func (d *demo) untilInterrupted(ctx context.Context) error {
	select {
	case <-ctx.Done():
		fmt.Fprintln(d.out)
		return nil
	case <-d.controllers.ended:
		return d.controllers.problem
	}
}

// findBinaries wants to be in the root of the repository, with binaries built.
func (d *demo) findBinaries() error {
	var err error
	if d.repo, err = os.Getwd(); err != nil {
		return err
	}
	for _, name := range []string{"bundle-source-controller", "bundle-deployment-controller", "satchel"} {
		if _, err := os.Stat(d.bin(name)); err != nil {
			return fmt.Errorf("%s is missing: run `make demo`, or `make build` in the root of the repository first", d.bin(name))
		}
	}
	return nil
}

// bin is the path of a binary that was built.
func (d *demo) bin(name string) string { return filepath.Join(d.repo, "bin", name) }

// openDir creates the folder of the demo and starts the process that removes it, also when the demo is killed.
func (d *demo) openDir() (*guarded, error) {
	var err error
	if d.dir, err = os.MkdirTemp("", "satchel-demo-"); err != nil {
		return nil, err
	}
	// The Git server keeps its repository in the folder for temporary files.
	if err := os.Setenv("TMPDIR", d.dir); err != nil {
		return nil, err
	}
	return startGuard(filepath.Join(d.dir, "janitor.json"), guardSpec{Remove: d.dir})
}

// onCleanUp has a function called in the end; the last one first.
func (d *demo) onCleanUp(f func(context.Context) error) { d.cleanups = append(d.cleanups, f) }

// cleanUp undoes everything, also after an interruption.
func (d *demo) cleanUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	d.sayf("Cleaning up.")
	var errs []error
	for len(d.cleanups) > 0 {
		last := len(d.cleanups) - 1
		errs = append(errs, d.cleanups[last](ctx))
		d.cleanups = d.cleanups[:last]
	}
	return errors.Join(errs...)
}

// startCluster starts a control plane, or connects to the given cluster.
func (d *demo) startCluster(ctx context.Context) error {
	if d.kubeconfig != "" {
		d.chapterf("Use the cluster of %s", d.kubeconfig)
		var err error
		d.cluster, err = connect(d.kubeconfig)
		return err
	}
	d.chapterf("Start a Kubernetes control plane")
	d.text("etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok, with fake nodes:\n" +
		"Pods become ready, but nothing runs in them. Building it takes minutes the first time.")
	own, err := controlplane.Start(ctx, controlplane.Options{Progress: d.out})
	if err != nil {
		return err
	}
	d.onCleanUp(func(context.Context) error { return own.Stop() })
	if d.cluster, err = connect(own.KubeconfigPath()); err != nil {
		return err
	}
	d.cluster.binDir = own.BinDir()
	d.sayf("Kubernetes %s is ready.", controlplane.KubernetesVersion)
	return nil
}
