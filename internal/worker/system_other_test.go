// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package worker

import (
	"syscall"

	"github.com/satchel-dev/satchel/internal/worker/child"
)

var shortages = []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE}

func addSystemHandlers(map[string]child.Handler) {}
