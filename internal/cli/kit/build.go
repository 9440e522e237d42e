// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// VersionInfo is what is known about a binary.
type VersionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// String is one line for people.
func (v VersionInfo) String() string {
	commit := ""
	if v.Commit != "" {
		commit = ", commit " + v.Commit[:min(len(v.Commit), 12)]
	}
	if v.Modified {
		commit += " with changes"
	}
	return fmt.Sprintf("%s (%s, %s%s)", v.Version, v.Go, v.Platform, commit)
}

// BuildVersion returns what the linker (-ldflags "-X main.version=...") said, completed with what the Go toolchain
// recorded in the binary.
func BuildVersion(linked string) VersionInfo {
	info := VersionInfo{Version: linked, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, found := debug.ReadBuildInfo()
	if !found {
		return info.complete()
	}
	if info.Version == "" && build.Main.Version != "(devel)" {
		info.Version = build.Main.Version
	}
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			info.Commit = setting.Value
		case "vcs.modified":
			info.Modified = setting.Value == "true"
		}
	}
	return info.complete()
}

func (v VersionInfo) complete() VersionInfo {
	if v.Version == "" {
		v.Version = "devel"
	}
	return v
}
