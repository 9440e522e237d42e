// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bufio"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestF45ControllerKilled kills a process that uses a pool at any moment: its workers end.
func TestF45ControllerKilled(t *testing.T) {
	for range 8 {
		command := exec.Command("/proc/self/exe", controllerArgument)
		output, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		workers := map[int]bool{}
		lines := bufio.NewScanner(output)
		for n := 1 + rand.IntN(8); n > 0 && lines.Scan(); n-- {
			pid, err := strconv.Atoi(strings.Fields(lines.Text())[0])
			if err != nil {
				t.Fatalf("the controller says %s", lines.Text())
			}
			workers[pid] = true
		}
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
		for pid, p := range processes(t) {
			if p.parent == command.Process.Pid {
				workers[pid] = true
			}
		}
		if len(workers) == 0 {
			t.Fatal("the controller has no worker")
		}
		_ = command.Process.Kill()
		_ = command.Wait()
		eventually(t, "the workers have ended", func() bool {
			for pid, p := range processes(t) {
				if workers[pid] && p.state != "Z" {
					return false
				}
			}
			return true
		})
	}
}
