// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/fetch/packed"
	"github.com/satchel-dev/satchel/internal/lint"
	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// lintKind is the job that only the command line has: the controllers do not link the validators of operator-framework/api.
const lintKind = "lint"

// Handlers are the jobs of the worker process of the command line, for child.Main.
func Handlers() map[string]child.Handler {
	all := maps.Clone(jobs.Handlers())
	all[lintKind] = lintBundle
	return all
}

type lintRequest struct {
	Index   []packed.Entry
	Options convert.Options
	// PlainV0 holds the bundle to the rules of RukPak.
	PlainV0 bool
}

// lintBundle is the job.
func lintBundle(in child.Input) ([]byte, error) {
	return jobs.Handle(in, func(request lintRequest) (lint.Report, error) {
		files, err := packed.New(in.File, request.Index)
		if err != nil {
			return lint.Report{}, err
		}
		if request.PlainV0 {
			return lint.PlainV0(files, request.Options), nil
		}
		return lint.Bundle(files, request.Options), nil
	})
}

// examined is lint.Bundle, or lint.PlainV0, in a worker process.
func examined(ctx context.Context, a *kit.App, files fs.FS, o convert.Options, plainV0 bool) (report lint.Report, err error) {
	err = a.WithPacked(ctx, files, func(pool *worker.Pool, packed jobs.Files) error {
		return jobs.Run(ctx, pool, "", lintKind, packed.File, lintRequest{Index: packed.Index, Options: o, PlainV0: plainV0}, &report)
	})
	if err != nil {
		return lint.Report{}, fmt.Errorf("examining the bundle: %w", err)
	}
	return report, nil
}

// chartOf reads the metadata of a chart, in a worker process. The chart was converted before, so its problems are reported
// already.
func chartOf(ctx context.Context, a *kit.App, files fs.FS, o convert.Options) (chart helm.Description, err error) {
	err = a.WithPacked(ctx, files, func(pool *worker.Pool, packed jobs.Files) error {
		chart, err = jobs.DescribeChart(ctx, pool, "", packed, o)
		return err
	})
	var refused *convert.Error
	if err != nil && !errors.As(err, &refused) {
		return helm.Description{}, fmt.Errorf("reading the chart: %w", err)
	}
	return chart, nil
}
