// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/satchel-dev/satchel/tests/controlplane"
)

// profilesVariable names a folder, which is created, for CPU profiles of the controller that is measured, one file for each second of a measurement:
// `go tool pprof -top FOLDER/BenchmarkConfigMaps-1000-*Ready-*` sums those of one. What is measured while it is set costs a few
// percent more.
const profilesVariable = "SATCHEL_BENCH_PROFILES"

// profilesTaken counts the profiles, so that a measurement that is repeated (-count) adds files, and overwrites none.
var profilesTaken atomic.Int64

// profilesAddress is a free address for profiles, or empty if they are not wanted.
func profilesAddress() (string, error) {
	if os.Getenv(profilesVariable) == "" {
		return "", nil
	}
	return controlplane.FreeAddress()
}

// profile takes CPU profiles of the controller until the returned function is called.
func (r *rig) profile(t testing.TB, what string) (end func()) {
	t.Helper()
	dir := os.Getenv(profilesVariable)
	if dir == "" || r.profiles == "" {
		return func() {}
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	var ended atomic.Bool
	var taking sync.WaitGroup
	taking.Go(func() {
		name := strings.Join(strings.FieldsFunc(t.Name()+"-"+what, func(c rune) bool { return strings.ContainsRune("/ ,%", c) }), "-")
		for !ended.Load() {
			if err := r.profileSecond(filepath.Join(dir, fmt.Sprintf("%s-%04d.pb.gz", name, profilesTaken.Add(1)))); err != nil {
				t.Error(err)
				return
			}
		}
	})
	return func() {
		ended.Store(true)
		taking.Wait()
	}
}

// profileSecond writes the CPU profile of the next second.
func (r *rig) profileSecond(file string) error {
	response, err := http.Get("http://" + r.profiles + "/debug/pprof/profile?seconds=1") //nolint:noctx // it ends after a second
	if err != nil {
		return err
	}
	defer response.Body.Close()
	profile, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, profile)
	}
	if err != nil {
		return fmt.Errorf("taking a profile: %w", err)
	}
	return os.WriteFile(file, profile, 0o600)
}
