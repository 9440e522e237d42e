// SPDX-License-Identifier: Apache-2.0

package jobs_test

import (
	"bufio"
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestF45KilledWhileConverting kills workers, and finally the process that uses them, at random moments of real conversions:
// after killed workers the results are correct, and in the end no process and no temporary file is left.
func TestF45KilledWhileConverting(t *testing.T) {
	rounds := 3
	if full() {
		rounds = 30
	}
	for round := range rounds {
		dir := t.TempDir()
		command := exec.Command("/proc/self/exe") //nolint:gosec // this test
		command.Env = []string{convertingIn + "=" + dir, "TMPDIR=" + dir}
		command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		output, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		input, err := command.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(output)
		killed := 0
		for range 5 {
			for range 1 + rand.IntN(20) {
				if !lines.Scan() || lines.Text() != "converted" {
					t.Fatalf("round %d, after %d killed workers: %s", round, killed, lines.Text())
				}
			}
			time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
			for _, pid := range inSession(command.Process.Pid) {
				if pid != command.Process.Pid && rand.IntN(2) == 0 && syscall.Kill(pid, syscall.SIGKILL) == nil {
					killed++
				}
			}
		}
		scan := func(n int) {
			for range n {
				lines.Scan()
			}
		}
		scan(20)                              // conversions that are tried again run alone, and would wait for the end of what never ends
		if err := input.Close(); err != nil { // it begins
			t.Fatal(err)
		}
		scan(10)
		go func() { _, _ = io.Copy(io.Discard, output) }()
		time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
		if err := command.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = command.Wait()
		for deadline := time.Now().Add(10 * time.Second); len(inSession(command.Process.Pid)) > 0; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("round %d: processes are left: %v", round, inSession(command.Process.Pid))
			}
		}
		nothingIsLeft(t, dir)
		if killed == 0 && full() {
			t.Logf("round %d killed no worker", round)
		}
	}
}

// inSession are the processes of a session; zombies without a parent do not count: init reaps them.
func inSession(session int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var found []int
	for _, name := range stats {
		content, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(content), ") ")
		fields := strings.Fields(rest) // state, parent, process group, session
		if len(fields) < 4 || fields[3] != strconv.Itoa(session) || fields[0] == "Z" && fields[1] != strconv.Itoa(session) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		found = append(found, pid)
	}
	return found
}

// restricted runs a copy of this test as an unprivileged user, with a read-only root and no_new_privs.
const restricted = `set -e
mount --make-rprivate /
mount -t tmpfs -o mode=1777 none "$1"
cp "$2" "$1/converting"
chmod 755 "$1/converting"
mount -o remount,bind,ro /
if touch /writable 2>/dev/null; then echo "the root is writable"; exit 1; fi
exec setpriv --reuid 65532 --regid 65532 --clear-groups --no-new-privs env -i "$3=$1" "$4=20" TMPDIR="$1" "$1/converting"`

// TestUnprivilegedWithReadOnlyRoot converts like the container of the controllers: as user 65532, with a read-only root file
// system and no_new_privs.
func TestUnprivilegedWithReadOnlyRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can remount the root file system and become another user")
	}
	for _, program := range []string{"unshare", "setpriv", "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	if err := exec.Command("unshare", "-m", "true").Run(); err != nil {
		t.Skip("mount namespaces are not allowed here: ", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "satchel-test-") // t.TempDir is below a folder that others may not enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	output, err := exec.Command("unshare", "-m", "sh", "-c", restricted, "sh", dir, self, convertingIn, convertingOnly).CombinedOutput() //nolint:gosec // constants, and this test
	if err != nil || bytes.Count(output, []byte("converted\n")) != 20 {
		t.Errorf("%v: %s", err, output)
	}
}
