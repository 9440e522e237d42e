// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// containerMemory is the lowest limit of memory of the control groups that this process is
// in, or math.MaxInt64.
func containerMemory() int64 {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return math.MaxInt64
	}
	lowest := int64(math.MaxInt64)
	for _, file := range groupFiles(groups, "memory.max", "memory.limit_in_bytes") {
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64); err == nil && limit > 0 {
			lowest = min(lowest, limit)
		}
	}
	return lowest
}

// kernelKills counts the processes of the own control group that the kernel killed because memory was short; 0 where that
// is not known.
func kernelKills() uint64 {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0
	}
	for _, file := range groupFiles(groups, "memory.events", "memory.oom_control") {
		if content, err := os.ReadFile(file); err == nil {
			return killsIn(content)
		}
	}
	return 0
}

// killsIn reads the counter in a file of events, which has one a line.
func killsIn(events []byte) uint64 {
	for line := range strings.Lines(string(events)) {
		if count, found := strings.CutPrefix(line, "oom_kill "); found {
			kills, _ := strconv.ParseUint(strings.TrimSpace(count), 10, 64) // 0 where it is not known
			return kills
		}
	}
	return 0
}

// groupFiles are the files that may exist with the given names, one for each version of control groups: of the group and all
// above it. In a container the group's own path often does not exist, and they are in the root of what is mounted.
func groupFiles(groups []byte, second, first string) []string {
	var files []string
	lines := bufio.NewScanner(bytes.NewReader(groups))
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), ":", 3)
		if len(fields) != 3 {
			continue
		}
		var root, file string
		switch {
		case fields[0] == "0" && fields[1] == "":
			root, file = "/sys/fs/cgroup", second
		case strings.Contains(","+fields[1]+",", ",memory,"):
			root, file = "/sys/fs/cgroup/memory", first
		default:
			continue
		}
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			files = append(files, path.Join(root, group, file))
			if group == "/" {
				break
			}
		}
	}
	return files
}
