// SPDX-License-Identifier: Apache-2.0

package manager

import (
	ctrl "sigs.k8s.io/controller-runtime"
)

// longestLibraryLine bounds the length of a line.
const longestLibraryLine = 512

// libraryLog receives what libraries write to Go's standard logger, such as net/http about an
// unsolicited response. Upstreams of tenants cause these lines and control a part of them, so
// they are logged only at debug level, and as a quoted value.
type libraryLog struct{}

// Write implements io.Writer.
func (libraryLog) Write(line []byte) (int, error) {
	ctrl.Log.WithName("library").V(1).Info("a library says", "line", string(line[:min(len(line), longestLibraryLine)]))
	return len(line), nil
}
