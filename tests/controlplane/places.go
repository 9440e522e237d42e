// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/satchel-dev/satchel/tests/controlplane/progress"
)

// maxPlaces is how many control planes run on a machine at once: each takes a good part of 1 GB.
const maxPlaces = 2

// errNoReserve is returned where Options.Beside names a control plane with nothing reserved.
var errNoReserve = errors.New("the control plane in Options.Beside has no reserved place left: raise its Options.Reserve")

// takePlace waits for a place on the machine, and for as many more as are to be reserved.
func (cp *ControlPlane) takePlace(ctx context.Context) error {
	if beside := cp.opts.Beside; beside != nil {
		place, err := beside.popReserved()
		cp.locks = append(cp.locks, place)
		return err
	}
	if cp.opts.Reserve < 0 || cp.opts.Reserve >= maxPlaces {
		return fmt.Errorf("reserving %d places: at most %d control planes run at once", cp.opts.Reserve, maxPlaces)
	}
	places, err := takePlaces(ctx, cp.opts, 1+cp.opts.Reserve)
	if err != nil {
		return fmt.Errorf("waiting for a place among the %d control planes of this machine: %w", maxPlaces, err)
	}
	cp.locks, cp.reserved = append(cp.locks, places[0]), places[1:]
	return nil
}

func (cp *ControlPlane) popReserved() (*os.File, error) {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if len(cp.reserved) == 0 {
		return nil, errNoReserve
	}
	place := cp.reserved[0]
	cp.reserved = cp.reserved[1:]
	return place, nil
}

// takePlaces takes several places; only one process at a time gathers them, so none keeps half of what
// another one needs.
func takePlaces(ctx context.Context, opts Options, count int) (places []*os.File, err error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	stop := progress.Report(opts.Progress, func() string {
		return fmt.Sprintf("waiting for one of the %d control planes of this machine to stop", maxPlaces)
	})
	defer stop()
	gate, err := lockFirst(ctx, filepath.Join(cache, "gate.lock"))
	if err != nil {
		return nil, err
	}
	defer unlock(gate)
	var paths []string
	for i := range maxPlaces {
		paths = append(paths, filepath.Join(cache, "place-"+strconv.Itoa(i)+".lock"))
	}
	for range count {
		place, err := lockFirst(ctx, paths...)
		if err != nil {
			unlock(places...)
			return nil, err
		}
		places = append(places, place)
	}
	return places, nil
}

// openDir creates and locks the directory.
func (cp *ControlPlane) openDir(ctx context.Context) error {
	var err error
	if cp.opts.Dir == "" {
		return cp.openTempDir(ctx)
	}
	if cp.dir, err = filepath.Abs(cp.opts.Dir); err != nil {
		return err
	}
	if err := os.MkdirAll(cp.dir, 0o700); err != nil {
		return fmt.Errorf("creating the directory of a control plane: %w", err)
	}
	return cp.lockDir()
}

// openTempDir creates a temporary directory, and removes those of processes that were killed.
func (cp *ControlPlane) openTempDir(ctx context.Context) error {
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	run := filepath.Join(cache, "run")
	if err := os.MkdirAll(run, 0o700); err != nil {
		return fmt.Errorf("creating the folder of temporary control planes: %w", err)
	}
	lock, err := lockFirst(ctx, filepath.Join(cache, "run.lock"))
	if err != nil {
		return err
	}
	defer unlock(lock)
	sweepRuns(run)
	if cp.dir, err = os.MkdirTemp(run, ""); err != nil {
		return fmt.Errorf("creating a temporary directory: %w", err)
	}
	cp.temporary = true
	return cp.lockDir()
}

func (cp *ControlPlane) lockDir() error {
	lock, err := tryLock(filepath.Join(cp.dir, "lock"))
	if errors.Is(err, errLocked) {
		return fmt.Errorf("%s is in use by another control plane: stop that, or use another directory", cp.dir)
	}
	cp.locks = append(cp.locks, lock)
	return err
}

// sweepRuns removes directories that are no longer locked.
func sweepRuns(run string) {
	entries, err := os.ReadDir(run)
	if err != nil {
		return
	}
	for _, entry := range entries {
		dir := filepath.Join(run, entry.Name())
		lock, err := tryLock(filepath.Join(dir, "lock"))
		if err != nil {
			continue
		}
		_ = os.RemoveAll(dir)
		unlock(lock)
	}
}
