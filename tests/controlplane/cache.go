// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// CacheEnv names the environment variable that moves the cache of built binaries, of run directories and
// of the machine-wide locks away from the user's cache directory.
const CacheEnv = "SATCHEL_CONTROLPLANE_CACHE"

// buildsKeptFor is how long an unused build stays in the cache.
const buildsKeptFor = 7 * 24 * time.Hour

// cacheDir returns the cache directory, which it creates.
func cacheDir() (string, error) {
	dir := os.Getenv(CacheEnv)
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding the cache directory, set %s: %w", CacheEnv, err)
		}
		dir = filepath.Join(user, "satchel", "controlplane")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("creating the cache directory, set %s to one that can be written: %w", CacheEnv, err)
	}
	return filepath.Abs(dir)
}

// sourceDir returns the folder of the module tests/cluster: below a parent of the working directory, or
// beside this source file.
func sourceDir() (string, error) {
	const below = "tests/cluster"
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working directory: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		candidate := filepath.Join(dir, below)
		if exists(filepath.Join(candidate, "go.mod")) {
			return candidate, nil
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if _, file, _, ok := runtime.Caller(0); ok {
		candidate := filepath.Join(filepath.Dir(filepath.Dir(file)), "cluster")
		if exists(filepath.Join(candidate, "go.mod")) {
			return candidate, nil
		}
	}
	return "", errors.New("finding the module tests/cluster: run in the source tree of Satchel")
}

// sourceHash returns a hash over all that decides what is built: module files, sources, flags, toolchain
// and platform.
func sourceHash(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("reading the module tests/cluster: %w", err)
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%s %s/%s %s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, strings.Join(buildArgs(""), " "))
	for _, entry := range entries {
		if !isSource(entry.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return "", fmt.Errorf("reading the module tests/cluster: %w", err)
		}
		fmt.Fprintf(hash, "%s %d\n", entry.Name(), len(data))
		_, _ = hash.Write(data)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

func isSource(name string) bool {
	return name == "go.mod" || name == "go.sum" ||
		strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
}

// sweepBuilds removes builds that were not used for a week, and what killed builds left behind.
func sweepBuilds(builds, keep string) {
	entries, err := os.ReadDir(builds)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || entry.Name() == keep || time.Since(info.ModTime()) < buildsKeptFor {
			continue
		}
		_ = os.RemoveAll(filepath.Join(builds, entry.Name()))
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// tail returns the last lines of a log file, for an error message.
func tail(path string, lines int) string {
	const most = 16 << 10
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Size() > most {
		_, _ = file.Seek(-most, io.SeekEnd)
	}
	data, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
