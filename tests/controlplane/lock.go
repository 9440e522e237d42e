// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Locks are flock(2) on a file: held by an open file, released by the kernel when the process ends. They
// are polled, where lockedfile would block, so that waiting ends with the context and shows progress.

// lockPoll is how often a held lock is tried again.
const lockPoll = 100 * time.Millisecond

// errLocked says that another process, or another caller in this one, holds the lock.
var errLocked = errors.New("the lock is held")

// tryLock takes the lock of the file at path, which it creates; closing the file releases it.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening a lock file: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return file, nil
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, fmt.Errorf("locking %s: %w", path, err)
}

// lockFirst takes the first free lock of the paths, and waits for one while all are held.
func lockFirst(ctx context.Context, paths ...string) (*os.File, error) {
	for {
		for _, path := range paths {
			file, err := tryLock(path)
			if !errors.Is(err, errLocked) {
				return file, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the lock %s: %w", filepath.Base(paths[0]), context.Cause(ctx))
		case <-time.After(lockPoll):
		}
	}
}

// unlock gives locks up.
func unlock(locks ...*os.File) {
	for _, lock := range locks {
		if lock != nil {
			_ = lock.Close()
		}
	}
}
