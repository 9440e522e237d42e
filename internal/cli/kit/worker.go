// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/plan/crdsafety"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/packed"
	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// workerOptions bound the process that converts a bundle: more than the controllers allow, and not all resources of the
// machine.
func workerOptions() worker.Options {
	return worker.Options{Workers: 1, CPU: 2 * time.Minute, Memory: 2 << 30, Output: 256 << 20, Wall: 10 * time.Minute}
}

// workers returns the pool with the process that reads bundles, which is started for the first of them.
func (a *App) workers() (*worker.Pool, error) {
	a.starting.Lock()
	defer a.starting.Unlock()
	if a.Pool == nil {
		pool, err := worker.New(workerOptions())
		if err != nil {
			return nil, err
		}
		a.Pool = pool
	}
	return a.Pool, nil
}

// Close ends the worker process.
func (a *App) Close() error {
	if a.Pool == nil {
		return nil
	}
	return a.Pool.Close()
}

// WithPacked gives the files of a bundle to a job in a worker process, so that a hostile bundle cannot exhaust the machine.
func (a *App) WithPacked(ctx context.Context, files fs.FS, run func(*worker.Pool, jobs.Files) error) error {
	pool, err := a.workers()
	if err != nil {
		return err
	}
	write, read, err := packed.Temporary("", "satchel-")
	if err != nil {
		return err
	}
	limits := fetch.DefaultLimits()
	index, err := packed.Pack(ctx, files, write, packed.Limits{Bytes: limits.ExtractedBytes, FileBytes: limits.FileBytes, Entries: limits.Entries})
	if err = errors.Join(err, write.Close()); err == nil {
		err = run(pool, jobs.Files{File: read, Index: index})
	}
	if failed := read.Close(); err == nil {
		err = failed
	}
	return err
}

// Converted converts a bundle as the controller does, in a worker process. A problem of the bundle is a *convert.Error.
func (a *App) Converted(ctx context.Context, files fs.FS, o convert.Options) (convert.Result, error) {
	var converted *jobs.Converted
	err := a.WithPacked(ctx, files, func(pool *worker.Pool, packed jobs.Files) (err error) {
		converted, err = jobs.Convert(ctx, pool, "", jobs.Conversion{Files: packed, Options: o})
		return err
	})
	var problems *convert.Error
	switch {
	case errors.As(err, &problems):
		return convert.Result{}, problems
	case err != nil:
		return convert.Result{}, fmt.Errorf("converting the bundle: %w", err)
	}
	return converted.Result()
}

// Judge judges the upgrade of a CRD in a worker process.
func (a *App) Judge(ctx context.Context, live, desired *unstructured.Unstructured) (crdsafety.Judgement, error) {
	pool, err := a.workers()
	if err != nil {
		return crdsafety.Judgement{}, err
	}
	return jobs.Judge(ctx, pool, "", live, desired)
}
