// SPDX-License-Identifier: Apache-2.0

// Package health tells whether applied objects work, by the rules
// of kstatus, and names the first real cause when they do not: down to the Pod
// with an image that cannot be pulled. It reads once and never waits.
package health
