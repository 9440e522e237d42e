// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/tests/controlplane"
)

// beKilled is the child of TestNoOrphans: it starts a control plane, pauses etcd, prints the directory
// and the ids of the processes on one line, and never returns.
func beKilled() error {
	cp, err := controlplane.Start(context.Background(), controlplane.Options{Progress: os.Stderr})
	if err != nil {
		return err
	}
	if err := cp.Etcd().Pause(); err != nil {
		return errors.Join(err, cp.Stop())
	}
	// When a parent is killed, the kernel resumes only the children that have stopped by then, with all of their threads.
	for !inState(strconv.Itoa(cp.Etcd().PID()), "T") {
		time.Sleep(10 * time.Millisecond)
	}
	line := []string{cp.Dir()}
	for _, component := range components(cp) {
		line = append(line, strconv.Itoa(component.PID()))
	}
	fmt.Println(strings.Join(line, " "))
	select {}
}

func TestNoOrphans(t *testing.T) {
	controlplane.StopShared(t)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childEnv+"=yes")
	child.Stderr = os.Stderr
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, readErr := bufio.NewReader(stdout).ReadString('\n')
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	fields := strings.Fields(line)
	if readErr != nil || len(fields) != 6 {
		t.Fatalf("the child printed %q: %v", line, readErr)
	}
	for _, field := range fields[1:] {
		eventually(t, "a component outlived its killed parent", func(context.Context) error { return gone(field) })
	}
	if err := startAndStop(t.Context(), fields[0]); err != nil {
		t.Errorf("the next start leaves the directory of a killed one: %v", err)
	}
}

// startAndStop starts and stops a control plane, and checks that the directory is gone.
func startAndStop(ctx context.Context, dir string) error {
	cp, err := controlplane.Start(ctx, controlplane.Options{Nodes: -1})
	if err != nil {
		return err
	}
	if err := cp.Stop(); err != nil {
		return err
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(fmt.Errorf("%s is still there", dir), err)
	}
	return nil
}

// gone returns an error while the process exists. A zombie counts as gone.
func gone(pid string) error {
	id, err := strconv.Atoi(pid)
	if err != nil {
		return err
	}
	if errors.Is(syscall.Kill(id, 0), syscall.ESRCH) {
		return nil
	}
	if inState(pid, "Z") {
		return nil
	}
	return fmt.Errorf("process %d exists", id)
}

// inState tells whether a process is in a state, in the letters of proc(5).
func inState(pid, letter string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && bytes.Contains(stat, []byte(") "+letter+" "))
}
