// SPDX-License-Identifier: Apache-2.0

// Package bundle opens the bundles that commands name (folders, archives, images, published artifacts) and converts
// them as the controllers do, in worker processes.
package bundle
