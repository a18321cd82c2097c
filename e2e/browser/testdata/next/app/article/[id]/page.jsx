import Link from 'next/link'

export function generateStaticParams() {
  return Array.from({ length: 30 }, (_, i) => ({ id: String(i) }))
}

export default async function Article({ params }) {
  const { id } = await params
  return (
    <main>
      <h1>Article {id}</h1>
      <p>{'The hedge was laid in the old way. '.repeat(40)}</p>
      <Link id="back" href="/">All articles</Link>
    </main>
  )
}
