// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Causes of errors that callers tell apart.
var (
	ErrNotFolder  = errors.New("not a folder")
	ErrNotRegular = errors.New("not a regular file")
	ErrReplaced   = errors.New("the file changed while it was read")
	ErrCacheSmall = errors.New("it is larger than the whole cache")
)

// StorageError says that the storage volume, and not the content, is why something could not be kept or read. Its text
// has no path of this machine and stays the same across retries. What failed before is still stored and served.
type StorageError struct {
	// Op is what was being done, a gerund: "writing".
	Op string
	// Err is the cause.
	Err error
}

// Error says what failed and what to do about it.
func (e *StorageError) Error() string {
	return e.Op + ": " + WithoutPath(e.Err).Error() + ": " + e.remedy()
}

// Unwrap returns the cause.
func (e *StorageError) Unwrap() error { return e.Err }

// Full tells that there was no room left.
func (e *StorageError) Full() bool {
	return errors.Is(e.Err, syscall.ENOSPC) || errors.Is(e.Err, syscall.EDQUOT) || errors.Is(e.Err, ErrCacheSmall)
}

func (e *StorageError) remedy() string {
	switch {
	case errors.Is(e.Err, ErrCacheSmall):
		return "raise the size of the cache"
	case e.Full():
		return "free space on the storage volume or enlarge it"
	case errors.Is(e.Err, syscall.EROFS):
		return "mount the storage volume writable"
	case errors.Is(e.Err, fs.ErrPermission):
		return "give the controller's user access to the storage volume"
	default:
		return "check the storage volume"
	}
}

// WrapError wraps a failure of the file system. Cancellation is none, and what is one already stays as it is.
func WrapError(op string, err error) error {
	var typed *StorageError
	if err == nil || errors.As(err, &typed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &StorageError{Op: op, Err: err}
}

// WithoutPath strips absolute paths and temporary names, which say nothing to people and differ at each try.
func WithoutPath(err error) error {
	var pathError *fs.PathError
	var linkError *os.LinkError
	switch {
	case errors.As(err, &pathError):
		return pathError.Err
	case errors.As(err, &linkError):
		return linkError.Err
	}
	return err
}
