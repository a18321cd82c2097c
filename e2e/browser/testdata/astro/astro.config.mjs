// A static build, as Astro makes it by default; links are fetched ahead only where
// they say so.
export default {
  output: 'static',
  prefetch: true,
  devToolbar: { enabled: false },
}
