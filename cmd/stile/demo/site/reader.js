// Marks articles that were read in this tab. It asks the server for nothing.
try {
  const seen = new Set(JSON.parse(sessionStorage.getItem("read") || "[]"));
  if (location.pathname.startsWith("/articles/")) seen.add(location.pathname);
  sessionStorage.setItem("read", JSON.stringify([...seen]));
  for (const a of document.querySelectorAll("ol.list a")) if (seen.has(a.pathname)) a.append(" ✓");
} catch { /* storage may be switched off */ }
