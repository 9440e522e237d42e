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
	for _, file := range limitFiles(groups) {
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

// limitFiles are the files that may hold a limit: of the group and all above it, for both
// versions of control groups. In a container the group's own path often does not exist, and
// the limit is in the root of what is mounted.
func limitFiles(groups []byte) []string {
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
			root, file = "/sys/fs/cgroup", "memory.max"
		case strings.Contains(","+fields[1]+",", ",memory,"):
			root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
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
