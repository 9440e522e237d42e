// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestUnprivileged runs tests like the controllers: as an unprivileged user with
// no_new_privs.
func TestUnprivileged(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	const user = 65532
	tests := []string{"TestRun", "TestRunFile", "TestSandbox", "TestConfined", "TestErrors", "TestSIGXCPU"}
	command := exec.Command("/proc/self/exe", "-test.v", "-test.run=^("+strings.Join(tests, "|")+")$")
	command.Dir = "/"
	command.Env = append(os.Environ(), "TMPDIR="+folderOf(t, user))
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	var output []byte
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for ever: the thread cannot lose no_new_privs
		if err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err == nil {
			output, err = command.CombinedOutput()
		}
	}()
	<-done
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for _, test := range tests {
		if !strings.Contains(string(output), "--- PASS: "+test+" ") {
			t.Errorf("%s did not pass:\n%s", test, output)
		}
	}
}

// folderOf returns a folder of the user.
func folderOf(t *testing.T, user int) string {
	t.Helper()
	folder, err := os.MkdirTemp(os.TempDir(), "worker")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chown(folder, user, user); err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestSandbox tries what a worker must not be able to do.
func TestSandbox(t *testing.T) {
	p := newPool(t, testOptions())
	if possible := mustRun(t, p, "attempts", ""); possible != "" {
		t.Errorf("a worker could, or failed for another reason:\n%s", possible)
	}
}

// TestSandboxAttemptsWork shows that the attempts are possible outside of a worker, so that
// the test above tests the sandbox. It leaves out what would hurt the test itself.
func TestSandboxAttemptsWork(t *testing.T) {
	for _, name := range []string{
		"socket", "datagram socket", "netlink", "socketpair", "dial", "open to read", "open null", "stat",
		"memory file", "kill the parent", "executable memory", "make executable",
	} {
		if err := attempts[name](); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOtherABI: the filter ends a process that uses the x32 ABI.
func TestOtherABI(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("there is one ABI")
	}
	p := newPool(t, testOptions())
	if _, err := run(t, p, "other ABI", ""); !errors.As(err, new(*CrashError)) || !strings.Contains(err.Error(), "bad system call") {
		t.Errorf("got %v, want a process ended by the filter", err)
	}
}

// TestConfined checks a worker from outside: all threads have the filter, nothing is
// inherited.
func TestConfined(t *testing.T) {
	inherited, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer inherited.Close()
	p := newPool(t, testOptions())
	pid := pidOf(t, p, "a")
	mustRun(t, p, "threads", "4")
	process := fmt.Sprintf("/proc/%d/", pid)
	tasks, err := filepath.Glob(process + "task/*/status")
	if err != nil || len(tasks) < 4 {
		t.Fatalf("%d threads, %v", len(tasks), err)
	}
	for _, task := range tasks {
		for _, want := range []string{"NoNewPrivs:\t1", "Seccomp:\t2"} {
			if !strings.Contains(read(t, task), want) {
				t.Errorf("%s does not say %s", task, want)
			}
		}
		if nice := strings.Fields(read(t, strings.TrimSuffix(task, "us")))[18]; nice != "5" {
			t.Errorf("%s: the nice value is %s", task, nice)
		}
	}
	if score := strings.TrimSpace(read(t, process+"oom_score_adj")); score != "1000" {
		t.Errorf("oom_score_adj is %s", score)
	}
	if got := mustRun(t, p, "environment", ""); got != "UTC" {
		t.Errorf("the environment is %q", got)
	}
	descriptors, err := os.ReadDir(process + "fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range descriptors {
		target, _ := os.Readlink(process + "fd/" + fd.Name())
		if !slicesContainsPrefix([]string{"/dev/null", "pipe:", "socket:", "anon_inode:[event", "/sys/fs/cgroup"}, target) {
			t.Errorf("descriptor %s is %s", fd.Name(), target)
		}
	}
	for _, limit := range []string{"Max core file size        0 ", "Max file size             0 ", "Max open files            16 ", "Max data size             268435456 "} {
		if !strings.Contains(read(t, process+"limits"), limit) {
			t.Errorf("the limits do not say %s:\n%s", limit, read(t, process+"limits"))
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func slicesContainsPrefix(prefixes []string, s string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}

// TestInheritedDescriptors opens one as C code would, without close-on-exec.
func TestInheritedDescriptors(t *testing.T) {
	fd, err := unix.Open("/etc", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	p := newPool(t, testOptions())
	pid := pidOf(t, p, "a")
	descriptors, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(descriptors) < 4 {
		t.Fatalf("%d descriptors, %v", len(descriptors), err)
	}
	for _, name := range descriptors {
		if target, _ := os.Readlink(name); target == "/etc" {
			t.Error("a worker inherited a descriptor")
		}
	}
}

// TestSIGXCPU fails without endBySIGXCPU: Go's runtime drops the signal, and a job that
// exceeds its CPU time runs for ever.
func TestSIGXCPU(t *testing.T) {
	p := newPool(t, testOptions())
	_, err := run(t, p, "signal", "")
	if err == nil {
		t.Fatal("a worker survived SIGXCPU")
	}
	began := time.Now()
	if _, err := run(t, p, "spin", ""); limitOf(err) != "cpu 2s" {
		t.Errorf("got %v after %v", err, time.Since(began))
	}
}
