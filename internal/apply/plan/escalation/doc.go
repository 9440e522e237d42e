// SPDX-License-Identifier: Apache-2.0

// Package escalation decides which changes of an upgrade go on without an approval in the mode OnEscalation. Only what is on
// the list of kinds, fields and values known to be harmless goes on; everything else that is new or changes is a finding, also
// what this package does not understand. New permissions and changes of CRDs are in package impact.
//
// The list is kinds.go for kinds and their fields, pods.go and security.go for Pods, metadata.go for labels and annotations.
// It is a pure function of the objects before and after, linear in their size.
package escalation
