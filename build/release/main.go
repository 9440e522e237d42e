// SPDX-License-Identifier: Apache-2.0

// Command release builds everything that users of a version get, into an empty folder: archives with the programs, their
// completions and man pages, container images, manifests, a Helm chart, lists of what is in all of them, and checksums. The
// same commit built by the same Go gives the same bytes, wherever and whenever that happens.
//
//	release -version v1.2.3 -out dist
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"
)

func main() {
	var r release
	targets := flag.String("targets", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "systems and architectures to build for")
	flag.StringVar(&r.version, "version", "", "version of the release")
	flag.StringVar(&r.registry, "registry", "", "what the names of the images begin with in install.yaml")
	flag.StringVar(&r.out, "out", "dist", "folder for the files; it must be empty, or not exist")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := r.prepare(*targets, os.Getenv("SOURCE_DATE_EPOCH"))
	if err == nil {
		err = r.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

// release is a release to build.
type release struct {
	version, registry, out string
	targets                []target
	epoch                  time.Time // of all files
	work                   string    // folder for what is not kept
}

// target is a system and an architecture.
type target struct{ system, arch string }

func (t target) String() string { return t.system + "_" + t.arch }

// prepare reads what was asked for.
func (r *release) prepare(targets, epoch string) error {
	if r.version == "" || strings.ContainsAny(r.version, "/ \t\n") {
		return fmt.Errorf("the version %q names no release: give -version", r.version)
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH is %q: set it to the time of the commit, in seconds, as `make release` does", epoch)
	}
	r.epoch = time.Unix(seconds, 0).UTC()
	for text := range strings.SplitSeq(targets, ",") {
		system, arch, found := strings.Cut(text, "/")
		if !found {
			return fmt.Errorf("the target %q is not a system and an architecture such as linux/amd64", text)
		}
		r.targets = append(r.targets, target{system, arch})
	}
	entries, err := os.ReadDir(r.out)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("the folder %s is not empty: remove it, so that nothing of another release is in this one", r.out)
	}
	return os.MkdirAll(r.out, 0o755)
}

// run builds everything.
func (r *release) run(ctx context.Context) (err error) {
	if r.work, err = os.MkdirTemp("", "satchel-release-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	for _, t := range r.targets {
		if err := r.program(ctx, t); err != nil {
			return fmt.Errorf("building for %s/%s: %w", t.system, t.arch, err)
		}
	}
	for _, step := range []func() error{r.images, r.manifests, r.chart, r.checksums} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
