// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package worker

import "syscall"

var shortages = []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE}

func addSystemHandlers(map[string]Handler) {}
