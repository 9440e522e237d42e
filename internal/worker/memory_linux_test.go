// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// TestGroupFiles finds the files that may hold the container's limit.
func TestGroupFiles(t *testing.T) {
	cases := map[string]struct {
		reason, groups string
		want           []string
	}{
		"version 2 in a container": {"the container's group is the root", "0::/\n", []string{"/sys/fs/cgroup/memory.max"}},
		"version 2 of the host": {
			"a group above may have a lower limit", "0::/pods/x\n",
			[]string{"/sys/fs/cgroup/pods/x/memory.max", "/sys/fs/cgroup/pods/memory.max", "/sys/fs/cgroup/memory.max"},
		},
		"version 1": {
			"memory is one of many", "5:cpu,cpuacct:/x\n4:rdma,memory:/x\n",
			[]string{"/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.limit_in_bytes"},
		},
		"outside of the namespace": {"the path begins above the root", "0::/../x\n", []string{"/sys/fs/cgroup/x/memory.max", "/sys/fs/cgroup/memory.max"}},
		"nothing":                  {"not a list of groups", "\nx\n", nil},
	}
	for name, tc := range cases {
		if got := groupFiles([]byte(tc.groups), "memory.max", "memory.limit_in_bytes"); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %s: got %v, want %v", name, tc.reason, got, tc.want)
		}
	}
}

// TestKillsIn reads the counter of both versions of control groups.
func TestKillsIn(t *testing.T) {
	for name, tc := range map[string]struct {
		events string
		want   uint64
	}{
		"version 2": {"low 0\nhigh 0\nmax 12\noom 4\noom_kill 3\noom_group_kill 1\n", 3},
		"version 1": {"oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", 2},
		"old":       {"oom_kill_disable 0\nunder_oom 0\n", 0},
		"not known": {"", 0},
	} {
		if got := killsIn([]byte(tc.events)); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
	t.Logf("the kernel killed %d processes of this control group", kernelKills())
}

// TestCheckMemory refuses workers that do not fit beside the process.
func TestCheckMemory(t *testing.T) {
	o := DefaultOptions()
	if err := checkMemory(&o, 1); err != nil {
		t.Errorf("without GOMEMLIMIT: %v", err)
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(400 * mebibyte))
	if err := checkMemory(&o, 1536*mebibyte); err != nil {
		t.Errorf("the manifests' figures: %v", err)
	}
	err := checkMemory(&o, 1024*mebibyte)
	if err == nil || !strings.Contains(err.Error(), "1024 MiB") || !strings.Contains(err.Error(), "--workers") {
		t.Errorf("got %v, want what is too much and what to do", err)
	}
	if limit := containerMemory(); limit <= 0 {
		t.Errorf("the limit of this container is %d", limit)
	} else if limit < math.MaxInt64 {
		t.Logf("the limit of this container is %s", inMebibytes(limit))
	}
}
