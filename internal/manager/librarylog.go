// SPDX-License-Identifier: Apache-2.0

package manager

import (
	ctrl "sigs.k8s.io/controller-runtime"
)

// longestLibraryLine bounds what is kept of one line.
const longestLibraryLine = 512

// libraryLog takes what libraries write to Go's standard logger, such as net/http about a
// server that sends what nobody asked for. Upstreams of tenants cause these lines and choose
// a part of them, so that they are shown only when debugging, and never as lines of their own.
type libraryLog struct{}

// Write implements io.Writer.
func (libraryLog) Write(line []byte) (int, error) {
	ctrl.Log.WithName("library").V(1).Info("a library says", "line", string(line[:min(len(line), longestLibraryLine)]))
	return len(line), nil
}
