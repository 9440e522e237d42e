// SPDX-License-Identifier: Apache-2.0

// Package health tells whether applied objects do what they are for, by the rules
// of kstatus, and names the first real cause when they do not: down to the Pod
// whose image cannot be pulled. It looks once and never waits.
package health
