// SPDX-License-Identifier: Apache-2.0

// Package escalation says which objects of an upgrade reach further than those before: what guards
// the cluster or its approvals, labels of Namespaces that decide what may run there, and what Pods
// may do to their node. New permissions and changes of CRDs are in package impact.
//
// It is a pure function of the objects before and after, linear in their size.
package escalation
