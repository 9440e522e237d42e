// SPDX-License-Identifier: Apache-2.0

// Package see has the commands that show what is installed: get, status, events, history and logs.
package see
