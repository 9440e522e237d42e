// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package worker

import "math"

// containerMemory is not known.
func containerMemory() int64 { return math.MaxInt64 }

// kernelKills are not known.
func kernelKills() uint64 { return 0 }
