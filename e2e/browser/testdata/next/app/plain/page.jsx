import Link from 'next/link'

// Rendered for each request, since it reads the query.
export default async function Plain({ searchParams }) {
  const { n } = await searchParams
  return (
    <main>
      <h1>Plain {n}</h1>
      <Link id="back" href="/">All articles</Link>
    </main>
  )
}
