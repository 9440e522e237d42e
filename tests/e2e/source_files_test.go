// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/controller/source"
	sourceprocess "github.com/satchel-dev/satchel/internal/controller/source/process"
	"github.com/satchel-dev/satchel/internal/manager"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// killVariable makes this test binary a source controller that is killed at a point: the
// namespace, the seed and the name of the point.
const killVariable = "SATCHEL_E2E_KILL"

// filePoints are the points at which artifacts are written.
var filePoints = []string{"created", "written", "closed", "renamed", "synced"}

// runKilled is the main of the source controller, on a file system that kills it.
func runKilled(at string) int {
	files := &killingFiles{}
	if _, err := fmt.Sscan(at, &files.namespace, &files.seed, &files.point); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	common := manager.Options{Version: "killed", Concurrent: sourceprocess.Concurrent}
	options := sourceprocess.Options{Storage: sourceprocess.StorageOptions{Files: files}}
	flags := pflag.NewFlagSet(source.FieldManager, pflag.ContinueOnError)
	options.BindFlags(flags)
	return manager.Main(source.FieldManager, &common, flags, os.Args[1:], func(_ context.Context, mgr ctrl.Manager) error {
		return options.Setup(mgr, common.Concurrent, common.Shard)
	})
}

// killingFiles kills this process at a point of the first artifact of a namespace.
type killingFiles struct {
	volume.OSFileSystem
	namespace, point string
	seed             int
	archive          string // the temporary file that becomes the archive
	renamed          bool
}

func (k *killingFiles) at(point string) {
	if point == k.point {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
}

// Create implements volume.FileSystem.
func (k *killingFiles) Create(root *os.Root, name string) (volume.File, error) {
	file, err := k.OSFileSystem.Create(root, name)
	if err != nil || k.archive != "" || !strings.Contains(name, "/"+k.namespace+"/") {
		return file, err
	}
	k.archive = name
	k.at("created")
	return &killingFile{File: file, files: k}, nil
}

// Rename implements volume.FileSystem.
func (k *killingFiles) Rename(root *os.Root, from, to string) error {
	err := k.OSFileSystem.Rename(root, from, to)
	if from == k.archive {
		k.at("renamed")
		k.renamed = true
	}
	return err
}

// SyncDir implements volume.FileSystem. Then all that is left is to write the status.
func (k *killingFiles) SyncDir(root *os.Root, name string) error {
	err := k.OSFileSystem.SyncDir(root, name)
	if k.renamed && name == path.Dir(k.archive) {
		k.at("synced")
	}
	return err
}

// killingFile is the archive while it is written.
type killingFile struct {
	volume.File
	files  *killingFiles
	writes int
}

// Write implements io.Writer. In one of the writes the process dies half-way.
func (f *killingFile) Write(p []byte) (int, error) {
	if f.writes++; f.writes == f.files.seed && f.files.point == "written" {
		_, _ = f.File.Write(p[:len(p)/2])
		f.files.at("written")
	}
	return f.File.Write(p)
}

// Close implements io.Closer.
func (f *killingFile) Close() error {
	err := f.File.Close()
	f.files.at("closed")
	return err
}

// F1: the source controller is killed while it stores an artifact: when the temporary file was
// created, half-way through it, when it was closed, renamed, and durable but not yet in the
// status.
func TestF1KilledWhileStoring(t *testing.T) {
	r := newRig(t)
	seeds := 1
	if full() {
		seeds = 3
	}
	for _, point := range filePoints {
		for seed := 1; seed <= seeds; seed++ {
			t.Run(fmt.Sprintf("%s, seed %d", point, seed), func(t *testing.T) { r.crashStoring(t, point, seed) })
		}
	}
}

func (r *rig) crashStoring(t *testing.T, point string, seed int) {
	namespace := controlplane.NewNamespace(t, r.CP)
	var downloads atomic.Int32
	body := noiseArchive(byte(seed))
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodGet {
			downloads.Add(1)
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(upstream.Close)
	r.Kill(sourceController)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(killVariable, fmt.Sprint(namespace, " ", seed, " ", point))
	doomed, err := r.Launch(sourceController, self, r.Arguments[sourceController])
	if err != nil {
		t.Fatal(err)
	}
	key := r.archive(t, namespace, "crash", upstream.URL+"/b.tar", time.Hour)
	if err := dead(doomed); err != nil {
		t.Fatalf("%v; its log ends in:\n%s", err, r.Log(sourceController))
	}
	r.proxy.deaths.Add(1)
	if err := r.Start(sourceController); err != nil {
		t.Fatal(err)
	}
	r.soundSource(t, key)
	if n := downloads.Load(); n > 2 {
		t.Errorf("the upstream was asked for the archive %d times, want at most one more than once", n)
	}
}

// dead waits until a process was killed.
func dead(process *exec.Cmd) error {
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL {
				return nil
			}
		}
		return fmt.Errorf("the controller ended otherwise than by being killed: %w", err)
	case <-time.After(patience):
		_ = process.Process.Kill()
		<-ended
		return errors.New("the controller was not killed at this point")
	}
}
