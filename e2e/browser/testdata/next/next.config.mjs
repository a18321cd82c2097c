// The root is named because a checkout may lie inside of another project.
export default {
  turbopack: { root: import.meta.dirname },
  poweredByHeader: false,
}
