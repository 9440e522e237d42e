// SPDX-License-Identifier: Apache-2.0

// Package stage holds the subject of a reconcile and the typed result of each stage: resolve, render, decide, deliver and
// settle. It is what one stage may know of another. A stage gets the results of earlier stages, writes its own, and never
// imports another stage.
package stage
