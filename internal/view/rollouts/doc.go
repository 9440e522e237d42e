// SPDX-License-Identifier: Apache-2.0

// Package rollouts says for people how far a BundleRollout is, what it waits for, and what comes next.
package rollouts
