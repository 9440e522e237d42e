// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// largeFolder writes a bundle with so many bytes beside its manifests, which nothing compresses.
func largeFolder(t *testing.T, size int) string {
	t.Helper()
	const each = 4 << 20
	files := map[string]string{"manifests/a.yaml": configMapText("large", "one")}
	for i := range size / each {
		blob := make([]byte, each)
		_, _ = rand.Read(blob)
		files[fmt.Sprintf("blobs/%02d", i)] = string(blob)
	}
	return folder(t, files)
}

// peak is the most memory that a process has taken, in bytes, since it was asked for last; 0 when it has ended.
func peak(pid int) int64 {
	proc := "/proc/" + strconv.Itoa(pid)
	status, err := os.ReadFile(proc + "/status")
	_, rest, found := strings.Cut(string(status), "VmHWM:")
	if err != nil || !found {
		return 0
	}
	kilobytes, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	_ = os.WriteFile(proc+"/clear_refs", []byte("5"), 0o600) // which resets it
	return kilobytes << 10
}

// runMeasured runs a command, and returns the most memory that it took. What wait4 tells of a child includes what its parent had.
func runMeasured(command *exec.Cmd) (most int64, err error) {
	if err := command.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			return most, err
		case <-ticker.C:
			most = max(most, peak(command.Process.Pid))
		}
	}
}

// cutter forwards connections, and cuts each after so many bytes.
type cutter struct {
	net.Listener

	to   string
	most atomic.Int64
	cuts atomic.Int64
}

func newCutter(t *testing.T, to string) *cutter {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	c := &cutter{Listener: listener, to: to}
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go c.forward(from)
		}
	}()
	return c
}

func (c *cutter) forward(from net.Conn) {
	defer func() { _ = from.Close() }()
	to, err := (&net.Dialer{}).Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	go func() { _, _ = io.Copy(from, to) }()
	if _, err := io.CopyN(to, from, c.most.Load()); err == nil {
		c.cuts.Add(1)
	}
}

// TestRunOfALargeFolder uploads what would take minutes to commit, in constant memory; cut off anywhere it leaves nothing behind,
// and is run again.
func TestRunOfALargeFolder(t *testing.T) {
	r := newRig(t)
	size := 24 << 20
	if os.Getenv("SATCHEL_FULL") != "" {
		size = 100 << 20
	}
	namespace := r.Namespace(t)
	dir := largeFolder(t, size)
	c := newCutter(t, r.Uploads)
	for _, percent := range []int64{10, 50, 99} {
		c.most.Store(int64(size) * percent / 100)
		r.satchel(t, namespace, "run", "large", dir, "--upload-address", c.Addr().String()).says(t, 2, "Restarting the upload", "the connection to the source controller broke")
		r.nothingHalfDone(t, namespace)
	}
	if c.cuts.Load() < 9 {
		t.Errorf("%d connections were cut, want three for each run", c.cuts.Load())
	}

	pid := r.Pids()[sourceController]
	before := peak(pid)
	command := exec.CommandContext(t.Context(), r.File("satchel"), append([]string{"--kubeconfig", r.CP.KubeconfigPath(), "-n", namespace}, r.runs("large", dir)...)...)
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	began := time.Now()
	own, err := runMeasured(command)
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	took, after := time.Since(began), peak(pid)
	t.Logf("%d MiB: run took %v; the command's memory peaked at %d MiB, the source controller's at %d MiB (%d MiB before)",
		size>>20, took.Round(100*time.Millisecond), own>>20, after>>20, before>>20)
	if own > 200<<20 || after > 200<<20 {
		t.Error("the folder is held in memory")
	}
	if !r.holds(t, namespace, "large") {
		t.Error("nothing was installed")
	}
	r.nothingHalfDone(t, "")
	r.satchel(t, namespace, "delete", "large", "--yes").says(t, 0, "gone")
}

// nothingHalfDone wants neither what was unpacked nor a draft to be there, and of a namespace nothing at all.
func (r *rig) nothingHalfDone(t *testing.T, namespace string) {
	t.Helper()
	patterns := []string{"data/scratch/upload-*", "data/artifacts/bundlesource/*/*/.tmp-*"}
	if namespace != "" {
		patterns = append(patterns, "data/artifacts/bundlesource/"+namespace+"/*/*.tar.gz")
	}
	deadline := time.Now().Add(patience)
	for {
		var left []string
		for _, pattern := range patterns {
			found, err := filepath.Glob(r.File(pattern))
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, found...)
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left behind: %v", left)
		}
		time.Sleep(20 * time.Millisecond) // between two looks
	}
}
