// SPDX-License-Identifier: Apache-2.0

// Package observe reads, as the tenant, what a plan depends on: how kinds are served, which objects and namespaces exist,
// how CRDs would change, and which requirements are met. It also finds the objects of a lost inventory. It writes nothing,
// and decides nothing.
package observe
