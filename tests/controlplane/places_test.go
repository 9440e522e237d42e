// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestPlaces(t *testing.T) {
	t.Setenv(CacheEnv, t.TempDir())
	both, err := takePlaces(t.Context(), Options{}, 2)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*lockPoll)
	defer cancel()
	if _, err := takePlaces(ctx, Options{}, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a third place: %v", err)
	}
	time.AfterFunc(lockPoll, func() { unlock(both[0]) })
	third, err := takePlaces(t.Context(), Options{}, 1)
	if err != nil {
		t.Fatalf("a place after one was released: %v", err)
	}
	unlock(third...)
	unlock(both[1])
}

func TestReserve(t *testing.T) {
	t.Setenv(CacheEnv, t.TempDir())
	first := &ControlPlane{opts: Options{Reserve: 1}}
	if err := first.takePlace(t.Context()); err != nil {
		t.Fatal(err)
	}
	beside := &ControlPlane{opts: Options{Beside: first}}
	if err := beside.takePlace(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := (&ControlPlane{opts: Options{Beside: first}}).takePlace(t.Context()); !errors.Is(err, errNoReserve) {
		t.Errorf("a third beside two: %v", err)
	}
	if err := (&ControlPlane{opts: Options{Reserve: maxPlaces}}).takePlace(t.Context()); err == nil {
		t.Error("more reserved than there are places")
	}
	unlock(append(first.locks, beside.locks...)...)
}

func TestSweepRunsKeepsWhatIsLocked(t *testing.T) {
	run := t.TempDir()
	used, stale := filepath.Join(run, "used"), filepath.Join(run, "stale")
	for _, dir := range []string{used, stale} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := tryLock(filepath.Join(used, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock(lock)
	sweepRuns(run)
	if !exists(used) || exists(stale) {
		t.Errorf("in use kept: %t, stale kept: %t", exists(used), exists(stale))
	}
}

func TestSourceHashFollowsSources(t *testing.T) {
	dir := t.TempDir()
	seen := map[string]string{}
	for _, name := range []string{"go.mod", "go.sum", "main.go", "README.md", "main_test.go"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		hash, err := sourceHash(dir)
		if err != nil {
			t.Fatal(err)
		}
		if before, found := seen[hash]; found && isSource(name) {
			t.Errorf("%s does not count: as after %s", name, before)
		}
		seen[hash] = name
	}
	if len(seen) != 3 {
		t.Errorf("%d hashes, not one for each of the three sources", len(seen))
	}
}

func TestNamespaceName(t *testing.T) {
	valid := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,44}[a-z0-9])?$`)
	for _, test := range []string{"TestA", "TestA/b_c/d", "Ünï", "___", strings.Repeat("TestLong/", 20)} {
		if name := namespaceName(test); !valid.MatchString(name) {
			t.Errorf("%q gives %q", test, name)
		}
	}
}

func TestFailedStartShowsTheLog(t *testing.T) {
	component := &Component{
		name: "sh", args: []string{"-c", "echo something is wrong >&2; exit 3"}, dir: t.TempDir(), binDir: "/bin",
		healthy: func(context.Context) error { return errors.New("not healthy") },
	}
	if err := os.Mkdir(filepath.Dir(component.LogPath()), 0o700); err != nil {
		t.Fatal(err)
	}
	component.lifeline, _ = os.Open(os.DevNull)
	err := component.Start(t.Context())
	if err == nil {
		t.Fatal("started")
	}
	for _, part := range []string{"starting sh", "exit status 3", "something is wrong", component.LogPath()} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("no %q in: %v", part, err)
		}
	}
}
